/** One view, many representations: negotiation, problems, forms, feeds. */
export type { Feed } from "./feeds.ts"
export { FormFields, parseForm, parseFormBody } from "./form-fields.ts"
export { acceptedBodies, bodyKind, type MediaType, mediaTypeOf, negotiate,
  splitQuoted } from "./negotiation.ts"
export { pageCaching, pageReaderOf } from "./page-reader.ts"
export { isProblemSlug, type ProblemSlug, problemTypes } from "./problem-types.ts"
export { accountChallenge, hasProblemPage, makeProblem, pagelessProblemReply, type ProblemDocument,
  type ProblemExtensions, problemReply, problemTypeView, withoutSecrets } from "./problem.ts"
export { chooseFormat, type FormatChoice, type FormatOffer, formatParameter, formatsOf, formatTypes,
  representationLinks } from "./representation-uris.ts"
export { contentTypeOf, contextTypes, entityTag, feedTypes, hasEntityTag, type LinkedData,
  linkedDataType, linkHeader, notificationTypes, render, type RenderContext, represent,
  type ResourceView, standardTypes } from "./representations.ts"
