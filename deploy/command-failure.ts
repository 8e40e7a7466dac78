/** How a command ends when it does not succeed. */
import { Schema } from "effect"

/** What the process answers to its caller; 74, 75 and 78 as in sysexits.h. */
export const exitCodes = {
  ok: 0,
  /** The command found problems, or could not do what it was asked. */
  failed: 1,
  /** The command line is wrong. */
  usage: 2,
  /** The store is corrupted. */
  corrupted: 74,
  /** Not now: the store is in use by another process, or the service does not answer. */
  unavailable: 75,
  /** A setting, or this platform, does not allow it. */
  configuration: 78
} as const

const ExitCode = Schema.Literals(Object.values(exitCodes))

/** A command ended without success; `message` is shown to the person who called it. */
export class CommandFailed extends Schema.TaggedError<CommandFailed>()("CommandFailed", {
  message: Schema.String,
  exitCode: ExitCode
}) {}
