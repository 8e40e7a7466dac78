/** The running service of a command: where it is, the credentials for it, and calls of it. */
export { type Context, type ContextList, contextNamed, readContexts,
  writeContexts } from "./context-file.ts"
export { asAccount, asAdmin, locateService } from "./located-service.ts"
export { assertOwn, ownAccountOf, ownResourceOf, recipientUris,
  resourceOf } from "./own-resource.ts"
export { checkedToken, resolveService, type ServiceLocation, tokenOfEnvironment,
  wrongUsage } from "./service-location.ts"
export { call, failureOf, notUnderstood, problemOf, type Refusals } from "./service.ts"
