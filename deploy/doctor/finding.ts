/** What `restante doctor` finds: one line for each thing that it looked at. */

export interface Finding {
  /** What was looked at. */
  readonly name: string
  /** `fail`: a node cannot run so, or will lose its users; `warn`: it can, but should not. */
  readonly state: "ok" | "warn" | "fail"
  /** What was found. */
  readonly found: string
  /** What to do; there is something to do unless the state is `ok`. */
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
