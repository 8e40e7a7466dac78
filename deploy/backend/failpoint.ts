/**
 * For tests: kills the process (SIGKILL) at a step of a message's life, as a crash would.
 * `RESTANTE_FAILPOINT=<step>:<kind>:<n>` kills it at the n-th such step of all actors of the kind.
 */
import type { Address, MessageStep } from "../../runtime/index.ts"

const pattern = /^(decided|committed|replied|performed):([a-z-]+):([1-9]\d*)$/

/** Parses the variable; undefined when it is unset or empty. Throws for malformed text. */
export const failpoint = (
  text: string | undefined
): ((step: MessageStep, address: Address) => void) | undefined => {
  if (text === undefined || text === "") return
  const [, atStep, kind, number] = pattern.exec(text) ?? []
  if (atStep === undefined) throw new RangeError(`RESTANTE_FAILPOINT: ${text} is not step:kind:n`)
  let left = Number(number)
  return (step, address) => {
    if (step === atStep && address.kind === kind && --left === 0) {
      process.kill(process.pid, "SIGKILL")
    }
  }
}
