/** One node, put together. */
export { loggingLayer } from "./logging.ts"
export { serve } from "./serve.ts"
