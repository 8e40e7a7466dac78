/** `restante config`. */
import { Console, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { baseUrlOf, type Found, type Settings } from "../settings.ts"
import { load, settingFlags } from "./flags.ts"

interface Row {
  readonly name: string
  readonly value: string | null
  readonly source: string
  readonly env: string
  readonly flag: string | null
  readonly about: string
}

const row = (settings: Settings) => ({ setting, source, text }: Found): Row => {
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

const columns = (rows: ReadonlyArray<Row>): ReadonlyArray<string> => {
  const cells = rows.map((one) => [one.name, one.value || "-", one.source, one.env])
  const all = [["SETTING", "VALUE", "FROM", "VARIABLE"], ...cells]
  const width = (at: number) => Math.max(...all.map((line) => (line[at] ?? "").length))
  const widths = [width(0), width(1), width(2), 0]
  return all.map((line) =>
    line.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ").trimEnd()
  )
}

export const configCommand = Command.make(
  "config",
  {
    ...settingFlags,
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Print JSON"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function*({ json, ...flags }) {
    const { found, settings } = yield* load(flags)
    const rows = found.map(row(settings))
    yield* Console.log(json ? JSON.stringify(rows, null, 2) : columns(rows).join("\n"))
  })
).pipe(
  Command.withDescription("Show every setting, its value and where the value comes from")
)
