/** Texts of strangers: as they are compared, and their beginnings. */
export { beginningOf, isBlank } from "./beginning.ts"
export { streamSafe } from "./stream-safe.ts"
