/** The running service of a command: where it is, the credentials for it, and calls of it. */
export { type Context, type ContextList, contextNamed, readContexts,
  writeContexts } from "./context-file.ts"
export { asAccount, asAdmin, checkedToken, locateService, resolveService, type ServiceLocation,
  tokenOfEnvironment, wrongUsage } from "./service-location.ts"
export { assertOwn, call, failureOf, notUnderstood, ownResourceOf, type Refusals,
  resourceOf } from "./service.ts"
