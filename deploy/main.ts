#!/usr/bin/env node
/** The entry point of the command line; nothing imports it. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Layer, type Runtime } from "effect"
import { CliConfig, CliError, CliOutput, Command, GlobalFlag } from "effect/cli"
import { checkArguments, plainLines, presenter, restante } from "./cli/index.ts"
import { CommandFailed, exitCodes } from "./command-failure.ts"
import { version } from "./version.ts"

const exitCodeOf = (failure: unknown): number => {
  if (failure instanceof CommandFailed) return failure.exitCode
  return CliError.isCliError(failure) ? exitCodes.usage : exitCodes.failed
}

/**
 * A command that a signal interrupts has succeeded, as `serve` has drained. A command that must
 * reach its end sets `process.exitCode` while it runs.
 */
const teardown: Runtime.Teardown = (exit, onExit) => {
  if (Exit.isSuccess(exit)) return onExit(exitCodes.ok)
  if (Cause.hasInterruptsOnly(exit.cause)) {
    return onExit(process.exitCode === undefined ? exitCodes.ok : exitCodes.failed)
  }
  onExit(exitCodeOf(Cause.squash(exit.cause)))
}

const report = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.sync(() => {
    if (Cause.hasInterruptsOnly(cause)) return
    const failure = Cause.squash(cause)
    if (CliError.isCliError(failure)) return // the command line has printed it
    const text = failure instanceof CommandFailed ? failure.message : Cause.pretty(cause)
    // A message may quote what another service has answered.
    process.stderr.write(plainLines(text).replace(/^(?=\S)/gm, "restante: ") + "\n")
  })

const commandLine = Layer.merge(
  CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] }),
  CliOutput.layerPresenter(presenter)
)

// Stores, archives and content are for their owner alone.
process.umask(0o077)

const args = process.argv.slice(2)

/** `help` and `help COMMAND` are as `--help`, as in other command lines. */
const withHelpFlag = args[0] === "help" ? [...args.slice(1), "--help"] : args

Effect.andThen(checkArguments(args), Command.runWith(restante, { version })(withHelpFlag)).pipe(
  Effect.tapCause(report),
  Effect.provide(Layer.merge(NodeServices.layer, commandLine)),
  NodeRuntime.runMain({ disableErrorReporting: true, teardown })
)
