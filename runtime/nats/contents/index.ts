/** Reading and restoring a whole store. */
export { natsContents } from "./contents.ts"
export { assertWhole } from "./restore.ts"
