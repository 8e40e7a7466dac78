/** What every request passes: routing, calls, preconditions, failures, rate limits. */
export { taken, Waiter, waitOf, withWaiter } from "./actor-waiter.ts"
export { bodyFailure, bodyOf, type Call, documentOf, empty, type Handled, type HandlerAnswer,
  type Input, inputOf, isPageWanted, queryOf, type ResourceHandler, shown, unsupported,
  type ViewAnswer } from "./call.ts"
export { challenge, fail, Failed, type HandlerFailure, type HeaderList, refused, tokenRefused,
  toProblem } from "./failures.ts"
export { keepingTyped, typedFields, withForm } from "./form-redisplay.ts"
export { count, type DeliveryMetrics, durationBoundsMs, HttpMetrics,
  type RouteMetrics } from "./http-metrics.ts"
export { nextLink, pageOf, type PageRequest } from "./paging.ts"
export { chooseRange, contentRange, evaluate, httpDate, ifRangeHolds } from "./preconditions.ts"
export { clientOf, type Rate, ratesOf } from "./rate-limits.ts"
export { conditionsHold, entityTags, isConditional, plain, renderAnswer, type Rendered,
  renderFailure, renderView, scriptHandler } from "./responses.ts"
export { compileRoutes, type Parameters, type Route } from "./routing.ts"
export { ask, askFor, type HttpSettings, ownPath, type Service, uri } from "./service.ts"
