/** The failure of a command, and its exit code. */
import { Schema } from "effect"

/** The exit codes of the process; 74, 75 and 78 are those of sysexits.h. */
export const exitCodes = {
  ok: 0,
  /** The command found problems, or failed. */
  failed: 1,
  /** The command line is wrong. */
  usage: 2,
  /** The store is corrupted. */
  corrupted: 74,
  /** Temporary: another process uses the store, or the service does not respond. */
  unavailable: 75,
  /** A setting is wrong, or the platform is not supported. */
  configuration: 78
} as const

const ExitCode = Schema.Literals(Object.values(exitCodes))

/** A command failed; its user reads `message`, the problem and the advice together. */
export class CommandFailed extends Schema.TaggedError<CommandFailed>()("CommandFailed", {
  message: Schema.String,
  /** What happened, and to what. */
  problem: Schema.String,
  exitCode: ExitCode
}) {}

/** The failure of a command: what happened and to what, and what its user can do. */
export const failed = (
  problem: string,
  advice: string,
  exitCode: CommandFailed["exitCode"] = exitCodes.failed
): CommandFailed => new CommandFailed({ message: `${problem}: ${advice}`, problem, exitCode })

/** The failure for a text of another module, which has both parts. */
export const failedAs = (
  message: string,
  exitCode: CommandFailed["exitCode"] = exitCodes.failed
): CommandFailed => new CommandFailed({ message, problem: message, exitCode })

/** The failure for a file that the command cannot read. */
export const unreadableFile = (file: string, cause: unknown): CommandFailed =>
  failed(
    `${file} cannot be read, ${reasonOf(cause)}`,
    "name a file that exists and that you may read"
  )

/** The message of an error. */
export const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)
