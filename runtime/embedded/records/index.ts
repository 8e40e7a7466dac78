/** Record tables and views in the embedded store. */
export { makeRecords } from "./records.ts"
export { embeddedView } from "./view.ts"
