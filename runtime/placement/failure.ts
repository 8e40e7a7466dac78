/** What a call of the registry failed with. */
import type { Cause } from "effect"

/** The failure that was named; undefined when the call broke off, or was not answered. */
export const failureOf = <E>(cause: Cause.Cause<E>): E | undefined => {
  const reason = cause.reasons.find((one) => one._tag === "Fail")
  return reason?._tag === "Fail" ? reason.error : undefined
}
