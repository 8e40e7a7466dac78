/** Attempts as text or JSON. */
export { printAttempts } from "./attempt-lines.ts"
