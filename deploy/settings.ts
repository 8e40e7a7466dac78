/**
 * The settings of a node: where each value comes from, and whether it is one. A flag overrides an
 * environment variable, which overrides cluster.config.ts.
 */
import { Redacted, Result, Schema } from "effect"
import { authProblems } from "./auth-table.ts"
import type { Setting } from "./setting.ts"
import { table } from "./table.ts"
import { secret } from "./values.ts"

type Table = typeof table
type Value<S> = S extends Setting<infer A, infer Needed> ? Needed extends true ? A : A | undefined
  : never

/** The values of all settings: times in ms, sizes in bytes. */
export type NodeSettings = { readonly [K in keyof Table]: Value<Table[K]> }

/** Every setting in the order in which `restante config` shows them. */
export const allSettings: ReadonlyArray<Setting<unknown>> = Object.values(table)

export type SettingSource =
  | "cluster.config.ts"
  | "unset"
  | `environment ${string}`
  | `flag --${string}`

/** A setting as it was found. `text` is what was written, `<set>` for a secret. */
export interface FoundSetting {
  readonly setting: Setting<unknown>
  readonly source: SettingSource
  readonly text: string | undefined
}

/** A value that is not one of its setting, with the message that stops the start. */
export interface WrongSetting {
  readonly message: string
}

export interface LoadedSettings {
  readonly settings: NodeSettings
  readonly found: ReadonlyArray<FoundSetting>
}

const written = (
  { env, fallback, flag }: Setting<unknown>,
  environment: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Record<string, string | undefined>>
): readonly [SettingSource, string | undefined] => {
  const byFlag = flag === undefined ? undefined : flags[flag]
  if (byFlag !== undefined) return [`flag --${flag}`, byFlag]
  const byEnvironment = environment[env]?.trim()
  if (byEnvironment !== undefined && byEnvironment !== "") {
    return [`environment ${env}`, byEnvironment]
  }
  return fallback === undefined ? ["unset", undefined] : ["cluster.config.ts", fallback]
}

const wrong = (one: Setting<unknown>, source: SettingSource, value: string): string => {
  const shown = one.kind === secret ? "<set>" : JSON.stringify(value)
  return `${one.name} is ${shown} (from ${source}); expected ${one.kind.expected}`
}

/**
 * Reads every setting. `environment` is by variable, where an empty one counts as unset; `flags` by
 * name without dashes. Fails with all wrong values at once.
 */
export const loadSettings = (
  environment: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Record<string, string | undefined>> = {}
): Result.Result<LoadedSettings, WrongSetting> => {
  const values: Record<string, unknown> = {}
  const found: Array<FoundSetting> = []
  const problems: Array<string> = []
  for (const [key, one] of Object.entries<Setting<unknown>>(table)) {
    const [source, value] = written(one, environment, flags)
    if (value === undefined) {
      found.push({ setting: one, source, text: undefined })
      continue
    }
    const decoded = Schema.decodeUnknownResult(one.kind.schema)(value)
    if (Result.isFailure(decoded)) problems.push(wrong(one, source, value))
    else values[key] = decoded.success
    found.push({ setting: one, source, text: one.kind === secret ? "<set>" : value })
  }
  problems.push(...authProblems(values))
  if (problems.length > 0) return Result.fail({ message: problems.join("\n") })
  // The loop above has decoded each key of the table by its own schema.
  return Result.succeed({ settings: values as NodeSettings, found })
}

/** The origin of every URI given out. `port` is the one that is listened on, as `PORT` may be 0. */
export const baseUrlOf = (settings: NodeSettings, port: number): string =>
  settings.baseUrl ?? `http://localhost:${port}`

/** The admin token, where one is set. */
export const adminTokenOf = (settings: NodeSettings): string | undefined =>
  settings.adminToken === undefined ? undefined : Redacted.value(settings.adminToken)
