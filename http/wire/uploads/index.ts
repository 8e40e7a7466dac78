/** Bodies as streams, and the files in which bytes wait that no reader has taken yet. */
export { Spill, SpillFolder, type SpillSettings } from "./spill.ts"
export { Upload } from "./upload.ts"
