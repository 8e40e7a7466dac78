/** `restante config`. */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { baseUrlOf, type FoundSetting, type NodeSettings } from "../settings.ts"
import { load, settingFlags } from "./flags.ts"
import { jsonFlag, printJson, table } from "./output.ts"

interface Row {
  readonly name: string
  readonly value: string | null
  readonly source: string
  readonly env: string
  readonly flag: string | null
  readonly about: string
}

const row = (settings: NodeSettings) => ({ setting, source, text }: FoundSetting): Row => {
  const derived = setting.name === "baseUrl" && text === undefined && settings.port !== 0
  return {
    name: setting.name,
    value: derived ? baseUrlOf(settings, settings.port) : text ?? null,
    source: derived ? "port" : source,
    env: setting.env,
    flag: setting.flag === undefined ? null : `--${setting.flag}`,
    about: setting.about
  }
}

const lines = (rows: ReadonlyArray<Row>): string => {
  const cells = rows.map((one) => [one.name, one.value || "-", one.source, one.env])
  return table([["SETTING", "VALUE", "FROM", "VARIABLE"], ...cells])
}

export const configCommand = Command.make(
  "config",
  {
    ...settingFlags,
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ json, ...flags }) {
    const { found, settings } = yield* load(flags)
    const rows = found.map(row(settings))
    yield* json ? printJson(rows) : Console.log(lines(rows))
  })
).pipe(
  Command.withDescription("Show every setting, its value and where the value comes from")
)
