/** `restante doctor`. */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { CommandFailed, exitCodes } from "../failure.ts"
import { load, settingFlags } from "./flags.ts"
import { jsonFlag, plain, printJson, some } from "./output.ts"

const signs = { ok: "ok  ", warn: "warn", fail: "FAIL" } as const

export const doctorCommand = Command.make(
  "doctor",
  { ...settingFlags, json: jsonFlag() },
  Effect.fnUntraced(function*({ json, ...flags }) {
    const { settings } = yield* load(flags)
    // Only the commands on stores need the native modules.
    const { examine } = yield* Effect.promise(() => import("../doctor/index.ts"))
    const findings = yield* examine(settings)
    if (json) yield* printJson(findings)
    else {
      for (const { advice, found, name, state } of findings) {
        yield* Console.log(`${signs[state]}  ${name}: ${plain(found)}`)
        if (advice !== undefined) yield* Console.log(`      -> ${plain(advice)}`)
      }
    }
    const failing = findings.filter(({ state }) => state === "fail").length
    if (failing === 0) return
    const message = `${some(failing, "thing")} must be put right before a node can run`
    return yield* new CommandFailed({ message, exitCode: exitCodes.failed })
  })
).pipe(
  Command.withDescription("Look at settings, store, NATS, clock and limits, and say what to do")
)
