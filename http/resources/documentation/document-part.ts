/** Reads parts of the OpenAPI document, whose form its own builder guarantees. */
import type { DocumentPart } from "../../formats/openapi/index.ts"

export const isPartOf = (value: unknown): value is DocumentPart =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The part; an empty one for anything else. */
export const partOf = (value: unknown): DocumentPart => isPartOf(value) ? value : {}

export const listOf = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** The text; an empty one for anything else. */
export const textOf = (value: unknown): string => typeof value === "string" ? value : ""
