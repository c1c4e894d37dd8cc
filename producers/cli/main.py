"""The root of the `kledger` command: one line registers each command, in the order of the help."""

from __future__ import annotations

from typing import Annotated

import typer

from ledger.runtime.private import private_files
from producers.cli.commands import (
    admin,
    backup,
    evolutions,
    forget,
    importing,
    integrity,
    knowledge,
    knowledge_reading,
    lineage,
    mcp,
    profiles,
    publishers,
    recall,
    refused,
    resources,
    sharing,
    slims,
    tokens,
    trees,
)
from producers.cli.examples import with_example
from producers.cli.screen import degrade
from producers.cli.session import EXIT_CODES, as_caller, as_operator, as_server

app = typer.Typer(
    name="kledger",
    help="Knowledge Ledger: what agents know, where it came from, and what became of it.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
profile = typer.Typer(no_args_is_help=True, help="What is remembered of a user, in two memories: user and work.")
evolution = typer.Typer(no_args_is_help=True, help="What a model made of items, and what was decided on it.")
conflicts = typer.Typer(no_args_is_help=True, help="Items that contradict each other, and which of them holds.")
resource = typer.Typer(no_args_is_help=True, help="Code, credentials and cookies that knowledge refers to.")
refused_events = typer.Typer(no_args_is_help=True, help="The events that do not count, and what is done about them.")

scope_type = typer.Typer(no_args_is_help=True, help="Types of scopes beside user, project, agent, team and org.")
key = typer.Typer(no_args_is_help=True, help="The keys with which the node signs.")
chain = typer.Typer(no_args_is_help=True, help="What the node signs of its log: where that begins.")
token = typer.Typer(no_args_is_help=True, help="Who may use a node over HTTP and Quack: tokens made, listed, revoked.")


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"kledger {admin.product_version()}")
        raise typer.Exit


@app.callback()
def every_command(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Knowledge Ledger: what agents know, where it came from, and what became of it."""


NODE, KNOWLEDGE, AUDIT = "Run a node", "Knowledge", "Operate and audit"

app.command("up", rich_help_panel=NODE)(admin.up)
app.command("status", rich_help_panel=NODE)(as_operator(admin.status))
app.command("version", rich_help_panel=NODE)(as_operator(admin.show_version))

app.add_typer(token, name="token", rich_help_panel=NODE)
app.command("nats-config", rich_help_panel=NODE)(publishers.nats_config)
token.command("create")(tokens.create)
token.command("list")(tokens.list_tokens)
token.command("revoke")(tokens.revoke)

app.add_typer(scope_type, name="scope-type", rich_help_panel=NODE)
scope_type.command("add")(as_operator(sharing.add_type))
scope_type.command("list")(as_operator(sharing.list_types))

app.command("import", rich_help_panel=KNOWLEDGE)(as_caller(importing.import_file))
app.command("search", rich_help_panel=KNOWLEDGE)(as_caller(knowledge_reading.search))
app.command("save", rich_help_panel=KNOWLEDGE)(as_caller(knowledge.save))
app.command("revise", rich_help_panel=KNOWLEDGE)(as_caller(knowledge.revise))
app.command("rate", rich_help_panel=KNOWLEDGE)(as_caller(knowledge.rate))
app.command("retire", rich_help_panel=KNOWLEDGE)(as_caller(knowledge.retire))
app.command("restore", rich_help_panel=KNOWLEDGE, cls=knowledge.RestoreItem)(as_caller(knowledge.restore))
app.command("show", rich_help_panel=KNOWLEDGE)(as_caller(knowledge_reading.show))
app.command("list", rich_help_panel=KNOWLEDGE)(as_caller(knowledge_reading.list_items))
app.command("history", rich_help_panel=KNOWLEDGE)(as_caller(knowledge_reading.history))
app.command("lineage", rich_help_panel=KNOWLEDGE)(as_caller(lineage.lineage))
app.command("revert", rich_help_panel=KNOWLEDGE)(as_caller(evolutions.revert))
app.command("evolve", rich_help_panel=KNOWLEDGE)(as_caller(evolutions.evolve))
app.add_typer(evolution, name="evolution", rich_help_panel=KNOWLEDGE)
app.command("slim", rich_help_panel=KNOWLEDGE)(as_caller(slims.slim))
app.command("slims", rich_help_panel=KNOWLEDGE)(as_caller(slims.slims))
app.command("extract", rich_help_panel=KNOWLEDGE)(as_caller(evolutions.extract))
app.add_typer(conflicts, name="conflicts", rich_help_panel=KNOWLEDGE)
app.command("mcp", rich_help_panel=KNOWLEDGE)(as_server(mcp.mcp))
app.command("share", rich_help_panel=KNOWLEDGE)(as_caller(sharing.share))
app.command("why-visible", rich_help_panel=KNOWLEDGE)(as_caller(sharing.why_visible))
app.command("startup", rich_help_panel=KNOWLEDGE)(as_caller(recall.startup))
app.command("focus", rich_help_panel=KNOWLEDGE)(as_caller(recall.focus))
app.command("goal", rich_help_panel=KNOWLEDGE)(as_caller(recall.goal))
app.command("prompt", rich_help_panel=KNOWLEDGE)(as_caller(recall.prompt))
app.command("export-tree", rich_help_panel=KNOWLEDGE)(as_caller(trees.export))
app.command("import-tree", rich_help_panel=KNOWLEDGE)(as_caller(trees.import_files))
app.add_typer(profile, name="profile", rich_help_panel=KNOWLEDGE)

evolution.command("show")(as_caller(evolutions.show_evolution))
evolution.command("list")(as_caller(evolutions.list_evolutions))
evolution.command("apply")(as_caller(evolutions.apply_evolution))
evolution.command("reject")(as_caller(evolutions.reject_evolution))
evolution.command("revert")(as_caller(evolutions.revert_evolution))

conflicts.command("list")(as_caller(evolutions.list_conflicts))
conflicts.command("resolve")(as_caller(evolutions.resolve_conflict))
app.add_typer(resource, name="resource", rich_help_panel=KNOWLEDGE)
resource.command("save")(as_caller(resources.save))
resource.command("show")(as_caller(resources.show))
resource.command("list")(as_caller(resources.list_resources))
resource.command("history")(as_caller(resources.history))
resource.command("retire")(as_caller(resources.retire))
resource.command("restore")(as_caller(resources.restore))

profile.command("show")(as_caller(profiles.show))
profile.command("prompt")(as_caller(profiles.prompt))
profile.command("history")(as_caller(profiles.history))
profile.command("set")(as_caller(profiles.set_content))
profile.command("patch")(as_caller(profiles.patch))
profile.command("register")(as_caller(profiles.register))
profile.command("disable")(as_caller(profiles.disable))

app.command("rebuild", rich_help_panel=AUDIT)(as_operator(admin.rebuild))
app.command("verify", rich_help_panel=AUDIT)(as_operator(admin.verify))
app.command("replay", rich_help_panel=AUDIT)(as_operator(admin.replay))
app.command("snapshot", rich_help_panel=AUDIT)(as_operator(admin.snapshot))
app.command("backup", rich_help_panel=AUDIT)(as_operator(backup.backup))
app.command("restore-backup", rich_help_panel=AUDIT)(as_operator(backup.restore_backup))
app.command("repair", rich_help_panel=AUDIT)(as_operator(backup.repair))
app.command("forget", rich_help_panel=AUDIT)(as_operator(forget.forget))
app.command("sql", rich_help_panel=AUDIT)(as_operator(admin.sql))
app.command("audit", rich_help_panel=AUDIT)(as_operator(integrity.audit))
app.command("prove", rich_help_panel=AUDIT)(as_operator(integrity.prove))
app.command("check-proof", rich_help_panel=AUDIT)(as_operator(integrity.check_proof))
app.add_typer(key, name="key", rich_help_panel=AUDIT)
app.add_typer(chain, name="chain", rich_help_panel=AUDIT)
chain.command("accept")(as_operator(integrity.accept_chain))
key.command("show")(as_operator(integrity.show_key))
key.command("rotate")(as_operator(integrity.rotate_key))
app.add_typer(refused_events, name="refused", rich_help_panel=AUDIT)

refused_events.command("list")(as_operator(refused.list_refused))
refused_events.command("retry")(as_operator(refused.retry))
refused_events.command("dismiss")(as_operator(refused.dismiss))

for group in (app, profile, evolution, conflicts, resource, refused_events, scope_type, key, chain, token):
    for command in group.registered_commands:
        command.help = with_example(command.callback.__doc__ if command.callback else None)


def main() -> None:
    """The entry point of the `kledger` script."""
    degrade()
    with private_files():
        app(prog_name=app.info.name)  # shell completion uses this name, also when run as a module


if __name__ == "__main__":
    main()
