/** Texts of strangers, as they are compared. */
export { streamSafe } from "./stream-safe.ts"
