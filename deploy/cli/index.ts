/** The command line of `restante`. */
import { Command } from "effect/cli"
import { accountCommand } from "./account.ts"
import { backupCommand, checkCommand, migrateCommand, restoreCommand } from "./archive.ts"
import { auditCommand } from "./audit/index.ts"
import { bridgeCommand } from "./bridge.ts"
import { contextCommand } from "./context.ts"
import { readCommand, registerCommand, registrationsCommand, watchCommand } from "./mailbox.ts"
import { configCommand, doctorCommand, serveCommand } from "./node.ts"
import { outboxCommand, sendCommand } from "./outgoing.ts"
import { loadCommand, queryCommand } from "./tables.ts"
import { topCommand } from "./top.ts"

export { checkArguments } from "./flags.ts"
export { plainLines, presenter } from "./terminal.ts"

/** The commands, in the order in which the help lists them. */
const commands = [
  serveCommand,
  configCommand,
  doctorCommand,
  topCommand,
  contextCommand,
  accountCommand,
  auditCommand,
  checkCommand,
  backupCommand,
  restoreCommand,
  migrateCommand,
  sendCommand,
  outboxCommand,
  readCommand,
  watchCommand,
  registerCommand,
  registrationsCommand,
  queryCommand,
  loadCommand,
  bridgeCommand
] as const

/** The whole command line. */
export const restante = Command.make("restante").pipe(
  Command.withDescription("Poste restante over HTTP: mailboxes, sessions and queries"),
  Command.withSubcommands(commands)
)
