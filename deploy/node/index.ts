/** One node, put together. */
export { loggingLayer } from "./logging.ts"
export { openToOthers } from "./private-folder.ts"
export { serve } from "./serve.ts"
