"""What is measured: each module runs one system once; the rounds (benchmarks/rounds.py) do so again and again."""
