"""The command line: the commands of agentjobs/commands put together. `python starter.py --help` lists them."""

import typer

from agentjobs.commands import (
    approvals,
    audit,
    budget,
    dead,
    dev,
    erase,
    grants,
    jobs,
    keys,
    queues,
    quota,
    redrives,
    submit,
    waiting,
    webhooks,
)
from agentjobs.commands.ending import Commands
from agentjobs.demo import command as demo

app = typer.Typer(
    cls=Commands,
    help="Durable jobs for agents: hand in a request, follow it, bring back what died.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
for commands in (dev, demo, submit, jobs, waiting, queues, audit):
    app.add_typer(commands.app)
app.add_typer(approvals.app, name="approvals")
app.add_typer(dead.app, name="dead")
app.add_typer(redrives.app, name="redrives")
app.add_typer(budget.app, name="budget")
app.add_typer(quota.app, name="quota")
app.add_typer(keys.app, name="keys")
app.add_typer(grants.app, name="grants")
app.add_typer(webhooks.app, name="webhooks")
app.add_typer(erase.app, name="erase")

if __name__ == "__main__":
    app()
