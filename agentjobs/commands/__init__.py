"""The commands of `python starter.py`. All but `dev` speak to the HTTP API and to nothing else.

Exit codes, the same for every command:

0    done; with `watch` and `submit --wait`: the job succeeded
1    the API refused, or the job did not succeed
2    wrong usage, or a setting is missing
3    the API cannot be reached, or cannot serve now
130  interrupted (Ctrl-C)
141  whoever read our output stopped reading
"""
