#pragma once

#include "src/heads/head_set.h"

namespace headlab {

/// How far two scores rank the same heads alike, from -1 to 1: Pearson's correlation of their ranks (Spearman's), equal
/// scores sharing the mean of their ranks. Nothing where one of them has all its scores equal. Throws UsageError where
/// the heads differ.
std::optional<double> rank_correlation(const HeadScores& one, const HeadScores& other);

/// {"all": 0.31, "enc.self": 0.8, ...}: of all heads, and of those of each stack; null where there is nothing to tell.
nlohmann::ordered_json agreement(const HeadScores& one, const HeadScores& other);

}  // namespace headlab
