/** Decision tables under test: one table without a runtime, and the coverage of its cells. */
export { type CellCount, CellCoverage, cellName, coverageOf,
  type CoverageReport } from "./cell-coverage.ts"
export { type DecidedParts, lineOfParts, partsOf } from "./decision-parts.ts"
export { noServices } from "./no-services.ts"
export { type GivenContext, type GivenState, type TableTest, testTable, UnexpectedDecision,
  type WhenDecided } from "./test-table.ts"
