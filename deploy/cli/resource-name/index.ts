/** How an argument of a command names a resource of the service. */
export { AccountText, locatorOf, MailboxText, type NamedResource, namedResource, type ResourceKind,
  resourceNames } from "./resource-name.ts"
