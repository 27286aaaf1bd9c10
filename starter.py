"""The command line: the commands of agentjobs/commands put together. `python starter.py --help` lists them."""

import typer

from agentjobs.commands import audit, budget, dead, dev, grants, jobs, keys, redrives, submit, waiting
from agentjobs.commands.ending import Commands
from agentjobs.demo import command as demo

app = typer.Typer(
    cls=Commands,
    help="Durable jobs for agents: hand in a request, follow it, bring back what died.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for commands in (dev, demo, submit, jobs, waiting, audit):
    app.add_typer(commands.app)
app.add_typer(dead.app, name="dead")
app.add_typer(redrives.app, name="redrives")
app.add_typer(budget.app, name="budget")
app.add_typer(keys.app, name="keys")
app.add_typer(grants.app, name="grants")

if __name__ == "__main__":
    app()
