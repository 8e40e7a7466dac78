/**
 * Everything XML, under one name: the rest of `http/` imports this file only, and `http/xml/` alone
 * imports xml-js and saxes.
 */
export { decodeDocument } from "./decoding.ts"
export { parseDocument, parseFragment, parseText } from "./document.ts"
export { type AttributesInput, childOf, childrenOf, type Element, element, escapeAttribute, failure,
  isName, isText, type Result, success, textOf, writeDocument, writeElement, xmlDeclaration,
  type XmlFault } from "./element.ts"
export { XmlRejected } from "./guard.ts"
export { type AttributeNames, fromJson, type JsonDocument, parseJsonDocument,
  toJson } from "./json.ts"
export { isUri, type NotificationDocument, type ParsedInlineContent,
  type RuleFault } from "./notification-rules.ts"
export { type FragmentChanges, notificationElement, parseNotification, parseNotificationText,
  storedFragment } from "./notification.ts"
export { rowParser } from "./rows.ts"
