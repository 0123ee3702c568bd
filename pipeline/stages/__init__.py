"""The stages data walks through: fetch, preprocess, boost, figures, claims, report."""
