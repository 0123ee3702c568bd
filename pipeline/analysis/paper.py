"""The numbers that the paper itself reports, each in one place."""

# (raw features, features, data points) of Table 1.
TABLE1 = {
    "california": (8, 8, 20640),
    "diabetes": (10, 10, 442),
    "adult": (13, 101, 32561),
    "german": (10, 48, 1000),
    "crime": (122, 122, 1994),
}
N_SEEDS, N_ROUNDS = 20, 20
TEST_SHARE = 0.2 / 0.8  # test rows per training row

LOWEST_R2, HIGHEST_R2 = 0.78, 0.99  # of the tails of the log-gap
LOWEST_R2_ON = ("california", "adult")
LARGEST_RISE = 0.10  # of the gap from one round to the next
MCE_FALLS_ON = ("german", "diabetes")  # by orders of magnitude
U_SHAPED_ON = ("california", "german")
BEST_EARLY = (1, 8)  # Unit's and Adaptive's best rounds
RELAXED_BEST = {"california": 12, "german": 5}  # about
