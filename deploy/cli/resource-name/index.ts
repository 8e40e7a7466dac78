/** How an argument of a command names a resource of the service. */
export { AccountName, AccountText, mailboxUri, type NamedResource, namedResource, type ResourceKind,
  resourceNames } from "./resource-name.ts"
