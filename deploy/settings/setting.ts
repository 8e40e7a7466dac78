/** What one setting is: its path in cluster.config.ts, its environment variable and its flag. */
import type { ValueKind } from "./values.ts"

/** One setting: `Name` in cluster.config.ts, its environment variable and its flag. */
export interface Setting<A, Needed extends boolean = boolean> {
  readonly name: string
  readonly env: string
  /** Without the dashes; a secret has none, since every user of the machine can see flags. */
  readonly flag: string | undefined
  readonly about: string
  readonly needed: Needed
  readonly kind: ValueKind<A>
  /** As it is written in cluster.config.ts; undefined when it has no default. */
  readonly fallback: string | undefined
}

type Plain = string | number | ReadonlyArray<string> | undefined

const plainText = (value: Plain): string | undefined =>
  typeof value === "object" ? value.join(",") : value === undefined ? undefined : String(value)

/** One that has a value at each start. */
export const setting = <A>(
  name: string,
  env: string,
  kind: ValueKind<A>,
  fallback: Plain,
  about: string
): Setting<A, true> => {
  const flag = env.toLowerCase().replaceAll("_", "-")
  return { name, env, flag, about, kind, needed: true, fallback: plainText(fallback) }
}

/** One that may be unset. */
export const optional = <A>(one: Setting<A, true>): Setting<A, false> => ({ ...one, needed: false })

/** One without a flag: for secrets. */
export const withoutFlag = <A, Needed extends boolean>(
  one: Setting<A, Needed>
): Setting<A, Needed> => ({ ...one, flag: undefined })
