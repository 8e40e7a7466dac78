/** A parser with the default limits, for tests of documents. */
import { DocumentParser } from "../../http/formats/xml/index.ts"
import { defaultDocumentLimits } from "../../http/limits.ts"

export const parser = new DocumentParser(defaultDocumentLimits)
