"""The only place with SQL. Statements live in queries/*.sql, the schema in migrations/; each typed method here
runs one statement and turns "no row" into a precise answer.
"""
