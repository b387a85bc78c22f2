"""The papers' claims against cells: checks, intervals, verdicts, the scoreboard."""
