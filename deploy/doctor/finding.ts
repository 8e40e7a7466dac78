/** A finding of `restante doctor`: what was examined, what was found, and what to do. */

export interface Finding {
  /** What was examined. */
  readonly name: string
  /** `fail`: a node cannot run, or would fail its users; `warn`: it can run, but should not. */
  readonly state: "ok" | "warn" | "fail"
  /** What was found. */
  readonly found: string
  /** What to do; undefined only if the state is `ok`. */
  readonly advice: string | undefined
}

/** A finding that is `ok` unless one of the conditions holds. */
export const finding = (
  name: string,
  found: string,
  advice: string,
  { fails = false, warns = false }: { readonly fails?: boolean; readonly warns?: boolean }
): Finding => {
  if (!fails && !warns) return { name, state: "ok", found, advice: undefined }
  return { name, state: fails ? "fail" : "warn", found, advice }
}

export const ok = (name: string, found: string): Finding => finding(name, found, "", {})

export const warn = (name: string, found: string, advice: string): Finding =>
  finding(name, found, advice, { warns: true })

export const fail = (name: string, found: string, advice: string): Finding =>
  finding(name, found, advice, { fails: true })
