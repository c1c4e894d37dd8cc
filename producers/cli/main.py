"""What can `kledger` do? One line a command, in the order of the help."""

from __future__ import annotations

import typer

from producers.cli import finding, importing, operating, refused, remembering, saying
from producers.cli.session import EXIT_CODES, as_caller, as_operator

app = typer.Typer(
    name="kledger",
    help="Knowledge Ledger: what agents know, where it came from, and what became of it.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
profile = typer.Typer(no_args_is_help=True, help="What is remembered of a user, in two memories: user and work.")
refused_events = typer.Typer(no_args_is_help=True, help="The events that do not count, and what is done about them.")

NODE, KNOWLEDGE, AUDIT = "Run a node", "Knowledge", "Operate and audit"

app.command("up", rich_help_panel=NODE)(operating.up)
app.command("status", rich_help_panel=NODE)(as_operator(operating.status))
app.command("version", rich_help_panel=NODE)(as_operator(operating.show_version))

app.command("import", rich_help_panel=KNOWLEDGE)(as_caller(importing.import_file))
app.command("search", rich_help_panel=KNOWLEDGE)(as_caller(finding.search))
app.command("save", rich_help_panel=KNOWLEDGE)(as_caller(saying.save))
app.command("revise", rich_help_panel=KNOWLEDGE)(as_caller(saying.revise))
app.command("rate", rich_help_panel=KNOWLEDGE)(as_caller(saying.rate))
app.command("retire", rich_help_panel=KNOWLEDGE)(as_caller(saying.retire))
app.command("restore", rich_help_panel=KNOWLEDGE)(as_caller(saying.restore))
app.command("show", rich_help_panel=KNOWLEDGE)(as_caller(finding.show))
app.command("list", rich_help_panel=KNOWLEDGE)(as_caller(finding.list_items))
app.command("history", rich_help_panel=KNOWLEDGE)(as_caller(finding.history))
app.command("lineage", rich_help_panel=KNOWLEDGE)(as_caller(finding.lineage))
app.add_typer(profile, name="profile", rich_help_panel=KNOWLEDGE)

profile.command("show")(as_caller(remembering.show))
profile.command("set")(as_caller(remembering.set_content))
profile.command("patch")(as_caller(remembering.patch))
profile.command("register")(as_caller(remembering.register))
profile.command("disable")(as_caller(remembering.disable))

app.command("rebuild", rich_help_panel=AUDIT)(as_operator(operating.rebuild))
app.command("verify", rich_help_panel=AUDIT)(as_operator(operating.verify))
app.command("replay", rich_help_panel=AUDIT)(as_operator(operating.replay))
app.command("snapshot", rich_help_panel=AUDIT)(as_operator(operating.snapshot))
app.command("sql", rich_help_panel=AUDIT)(as_operator(operating.sql))
app.add_typer(refused_events, name="refused", rich_help_panel=AUDIT)

refused_events.command("list")(as_operator(refused.list_refused))
refused_events.command("retry")(as_operator(refused.retry))
refused_events.command("dismiss")(as_operator(refused.dismiss))


def main() -> None:
    """The entry point of the `kledger` script."""
    app()


if __name__ == "__main__":
    main()
