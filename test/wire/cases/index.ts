/** The whole table of requests. */
import { answers } from "./answers.ts"
import type { WireCase } from "./case.ts"
import { chunks } from "./chunks.ts"
import { codings } from "./codings.ts"
import { fields } from "./fields.ts"
import { lengths } from "./lengths.ts"
import { lines } from "./lines.ts"
import { names } from "./names.ts"
import { partialRequests } from "./partial-requests.ts"

export { reasons, type WireCase } from "./case.ts"

export const cases: ReadonlyArray<WireCase> = [
  ...lengths,
  ...codings,
  ...chunks,
  ...fields,
  ...lines,
  ...names,
  ...partialRequests,
  ...answers
]
