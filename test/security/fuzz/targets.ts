/** Every parser of data from strangers. */
import { documents } from "./documents.ts"
import { fields } from "./fields.ts"
import type { Target } from "./fuzzer.ts"

export const targets: ReadonlyArray<Target> = [...documents, ...fields]
