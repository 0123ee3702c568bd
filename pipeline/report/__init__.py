"""From evidence to the files a reader opens: tables, verdicts, figures and one page."""
