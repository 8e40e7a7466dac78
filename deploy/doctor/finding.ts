/** The findings of `restante doctor`, each in three parts: its subject, its state, the advice. */

export interface Finding {
  /** The subject. */
  readonly name: string
  /** `fail`: a node cannot run, or would fail its users; `warn`: it can run, but should not. */
  readonly state: "ok" | "warn" | "fail"
  /** The observation. */
  readonly found: string
  /** What to do; undefined only when the state is `ok`. */
  readonly advice: string | undefined
}

export const ok = (name: string, found: string): Finding => ({
  name,
  state: "ok",
  found,
  advice: undefined
})

export const warn = (name: string, found: string, advice: string): Finding => ({
  name,
  state: "warn",
  found,
  advice
})

export const fail = (name: string, found: string, advice: string): Finding => ({
  name,
  state: "fail",
  found,
  advice
})
