/** `restante serve`, `config` and `doctor`: one node. */
import { Console, Effect, Redacted } from "effect"
import { Command } from "effect/cli"
import { failed } from "../command-failure.ts"
import { resolvedOn, type ResolvedSetting } from "../settings/index.ts"
import { version } from "../version.ts"
import { jsonFlag, loadSettingsOf, settingFlags } from "./flags.ts"
import { tokenOfEnvironment } from "./service/index.ts"
import { plain, plural, printJson, table } from "./terminal.ts"

/** One row of the list of settings. */
const row = ({ setting, source, text }: ResolvedSetting) => ({
  name: setting.key,
  value: text ?? null,
  source,
  env: setting.variable,
  flag: setting.flag === undefined ? null : `--${setting.flag}`,
  about: setting.description
})

export const configCommand = Command.make(
  "config",
  {
    ...settingFlags,
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ json, ...flags }) {
    const loaded = yield* loadSettingsOf(flags)
    const rows = resolvedOn(loaded, loaded.settings.port).map(row)
    if (json) return yield* printJson(rows)
    const cells = rows.map(({ env, name, source, value }) => [name, value || "-", source, env])
    yield* Console.log(table([["SETTING", "VALUE", "FROM", "VARIABLE"], ...cells]))
  })
).pipe(
  Command.withDescription("Show every setting, its value and where the value comes from")
)

const signs = { ok: "ok  ", warn: "warn", fail: "FAIL" } as const

export const doctorCommand = Command.make(
  "doctor",
  { ...settingFlags, json: jsonFlag() },
  Effect.fnUntraced(function*({ json, ...flags }) {
    const loaded = yield* loadSettingsOf(flags)
    // Other commands do not load this module, since it needs native modules.
    const { examine } = yield* Effect.promise(() => import("../doctor/index.ts"))
    const token = yield* tokenOfEnvironment
    const findings = yield* examine(loaded, token && Redacted.value(token))
    if (json) yield* printJson(findings)
    else {
      for (const { advice, found, name, state } of findings) {
        yield* Console.log(`${signs[state]}  ${name}: ${plain(found)}`)
        if (advice !== undefined) yield* Console.log(`      -> ${plain(advice)}`)
      }
    }
    const failing = findings.filter(({ state }) => state === "fail").length
    if (failing === 0) return
    return yield* failed(
      `${plural(failing, "finding")} above ${
        failing === 1 ? "prevents" : "prevent"
      } a node from running`,
      "follow the advice of each, and repeat the command"
    )
  })
).pipe(
  Command.withDescription("Examine settings, store, NATS, clock and limits, and advise")
)

export const serveCommand = Command.make(
  "serve",
  settingFlags,
  Effect.fnUntraced(function*(flags) {
    const loaded = yield* loadSettingsOf(flags)
    // Other commands do not load this module, since it needs native modules.
    const { loggingLayer, serve } = yield* Effect.promise(() => import("../node/index.ts"))
    yield* serve(loaded, version).pipe(Effect.provide(loggingLayer(loaded.settings)))
  })
).pipe(
  Command.withDescription("Run the service until SIGTERM or SIGINT, then drain and stop"),
  Command.withExamples([
    { command: "restante serve", description: "Serve on port 8080, with the store in ./data" },
    { command: "restante serve --port 9000 --data-dir /var/lib/restante", description: "Elsewhere" }
  ])
)
