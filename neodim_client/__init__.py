"""A typed client of Neodim: every call of its API, waiting or within asyncio.

It needs httpx and nothing of the server.
"""

from neodim_client.async_client import AsyncClient
from neodim_client.client import Client
from neodim_client.completion import (
    CompletionResponse,
    CompletionResult,
    CompletionSummary,
    StreamChunk,
    StreamItem,
    StreamSummary,
)
from neodim_client.completion_request import CompletionRequest
from neodim_client.controls import ControlTokenOverlap, ImageControl, TextControl, TokenControl
from neodim_client.embedding import EmbeddingRequest, EmbeddingResponse
from neodim_client.errors import (
    ApiError,
    BrokenStream,
    ConnectionFailed,
    InvalidAnswer,
    JobCancelled,
    JobError,
    JobFailed,
    JobNotFound,
    MissingCapability,
    NeodimClientError,
    NotFound,
    PromptTooLong,
    QueueFull,
    RequestRejected,
    ServerFailure,
    TimedOut,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnknownModel,
)
from neodim_client.evaluation import EvaluationRequest, EvaluationResponse, EvaluationResult
from neodim_client.explanation import (
    CustomGranularity,
    Explanation,
    ExplanationPostprocessing,
    ExplanationRequest,
    ExplanationResponse,
    ImageScore,
    ItemExplanation,
    PromptGranularity,
    TargetGranularity,
    TextScore,
)
from neodim_client.generate import GeneratedSequence, GenerateRequest, GenerateResponse, Gpu
from neodim_client.jobs import (
    Job,
    JobEnded,
    JobProblem,
    JobState,
    Progress,
    StateChanged,
    TextAdded,
)
from neodim_client.models import ModelInfo
from neodim_client.prompt import Cropping, Image, Prompt, PromptItem, Text, Tokens
from neodim_client.retrying import RetryPolicy
from neodim_client.tokenization import (
    DetokenizationRequest,
    DetokenizationResponse,
    TokenizationRequest,
    TokenizationResponse,
)
from neodim_client.version import VERSION as __version__

__all__ = [
    "ApiError",
    "AsyncClient",
    "BrokenStream",
    "Client",
    "CompletionRequest",
    "CompletionResponse",
    "CompletionResult",
    "CompletionSummary",
    "ConnectionFailed",
    "ControlTokenOverlap",
    "Cropping",
    "CustomGranularity",
    "DetokenizationRequest",
    "DetokenizationResponse",
    "EmbeddingRequest",
    "EmbeddingResponse",
    "EvaluationRequest",
    "EvaluationResponse",
    "EvaluationResult",
    "Explanation",
    "ExplanationPostprocessing",
    "ExplanationRequest",
    "ExplanationResponse",
    "GenerateRequest",
    "GenerateResponse",
    "GeneratedSequence",
    "Gpu",
    "Image",
    "ImageControl",
    "ImageScore",
    "InvalidAnswer",
    "ItemExplanation",
    "Job",
    "JobCancelled",
    "JobEnded",
    "JobError",
    "JobFailed",
    "JobNotFound",
    "JobProblem",
    "JobState",
    "MissingCapability",
    "ModelInfo",
    "NeodimClientError",
    "NotFound",
    "Progress",
    "Prompt",
    "PromptGranularity",
    "PromptItem",
    "PromptTooLong",
    "QueueFull",
    "RequestRejected",
    "RetryPolicy",
    "ServerFailure",
    "StateChanged",
    "StreamChunk",
    "StreamItem",
    "StreamSummary",
    "TargetGranularity",
    "Text",
    "TextAdded",
    "TextControl",
    "TextScore",
    "TimedOut",
    "TokenControl",
    "TokenizationRequest",
    "TokenizationResponse",
    "Tokens",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
    "UnknownModel",
    "__version__",
]
