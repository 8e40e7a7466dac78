/** The suites from outside, in the order in which they run. */
import { schemathesis } from "./schemathesis.ts"
import type { ForeignSuite } from "./suite.ts"

export const suites: ReadonlyArray<ForeignSuite> = [schemathesis]
