/** Texts of strangers that are normalized. */
import { combiningRunMax } from "../limits.ts"
import { beginningOf } from "./beginning.ts"

/**
 * A text that is normalized in linear time. Normalizing puts the marks on a letter in order, which
 * takes quadratic time: 16 s for 128,000 of them. So longer runs of marks are cut, as the
 * Stream-Safe Text Format does (UAX #15, section 13), to what no language needs. The sound marks of
 * halfwidth katakana are letters, and become marks by NFKD.
 */
export const streamSafe = (text: string): string =>
  text.replace(/[\p{M}\uFF9E\uFF9F]+/gu, (marks) => beginningOf(marks, combiningRunMax))
