/** Attempts as text or JSON. */
export { printAttempts, problemBeside } from "./attempt-lines.ts"
