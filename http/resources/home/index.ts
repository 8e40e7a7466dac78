/** The home page, the service document and fixed files (protocol §6). */
export { answerFile, cacheable, fileOperation, makeFile } from "./fixed-file.ts"
export { homeResource } from "./home-resource.ts"
