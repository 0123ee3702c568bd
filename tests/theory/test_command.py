"""``python -m pipeline.theory``."""

from pipeline.theory.statements import STATEMENTS

BROKEN = {id_: s for id_, s in STATEMENTS.items() if s.correction}


def test_command_of_an_erratum_prints_its_verdict_correction_and_numbers(command):
    done = command("-n", "2", *BROKEN, module="pipeline.theory")
    parts = done.stdout.strip().split("\n\n")
    assert len(parts) == len(BROKEN)
    for part, (id_, statement) in zip(parts, BROKEN.items(), strict=True):
        first, verdict, *rest = part.strip().splitlines()
        assert first == f"{id_} ({statement.where}): {statement.text}"
        assert verdict.startswith(("fails as stated; ", "holds in a narrower regime; "))
        assert f"  {statement.correction}" in rest
        first_check = next(line for line in rest if line.startswith("  measured "))
        measured, bound = (float(word) for word in first_check.split()[1::2])
        assert measured > bound  # what fails is shown first


def test_command_refuses_what_is_no_statement(command):
    done = command("Q9", module="pipeline.theory")
    assert done.returncode == 2
    assert "invalid choice: 'Q9'" in done.stderr
