/** Reading and restoring a whole store. */
export { natsContents } from "./contents.ts"
export { assertWhole, beginRestore, hasContents } from "./restore.ts"
