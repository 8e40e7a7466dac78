/** What every request passes: routing, calls, preconditions, failures, rate limits. */
export { awaitWritable, ChangeWaiter, preferredWaitSeconds,
  withChangeWaiter } from "./actor-waiter.ts"
export { bodyError, type Call, emptyAnswer, type Handled, type HandlerAnswer, isPageWanted,
  readBody, readDocument, readInput, readQuery, type RequestInput, type ResourceHandler,
  unsupportedMediaType, type ViewAnswer, viewAnswer } from "./call.ts"
export { challenges, type HandlerFailure, type HeaderList, HttpError, httpError, invalidTokenError,
  refusalError, toProblem } from "./failures.ts"
export { attachForm, submittedFields, withFormRedisplay } from "./form-redisplay.ts"
export { countRequest, type DeliveryMetrics, durationBoundsMs, HttpMetrics,
  type RouteMetrics } from "./http-metrics.ts"
export { nextLink, type PageRequest, readPageRequest } from "./paging.ts"
export { chooseRange, contentRange, evaluatePreconditions, httpDate,
  isIfRangeSatisfied } from "./preconditions.ts"
export { clientAddress, makeRateLimiter, type Rate } from "./rate-limits.ts"
export { entityTags, isConditional, preconditionsHold, renderAnswer, type Rendered, renderedAnswer,
  renderFailure, renderView, scriptHandler } from "./responses.ts"
export { compileRoutes, type Parameters, type Route } from "./routing.ts"
export { absoluteUri, ask, askOrRefusal, type HttpSettings, localPath,
  type Service } from "./service.ts"
