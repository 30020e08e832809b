package cuda

// An entry is a function of the driver: an index into entries.
type entry uint8

// The functions of the driver that this package calls.
const (
	cuInit entry = iota
	cuDriverGetVersion
	cuGetErrorName
	cuGetErrorString

	cuDeviceGet
	cuDeviceGetCount
	cuDeviceGetName
	cuDeviceGetAttribute
	cuDeviceTotalMem
	cuDeviceGetUuid
	cuDeviceGetPCIBusId
	cuDeviceCanAccessPeer

	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuDevicePrimaryCtxReset
	cuDevicePrimaryCtxSetFlags
	cuCtxSetCurrent
	cuCtxSynchronize
	cuCtxGetStreamPriorityRange
	cuCtxEnablePeerAccess

	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuMemAllocAsync
	cuMemFreeAsync
	cuDeviceGetDefaultMemPool
	cuMemPoolSetAttribute
	cuMemPoolTrimTo
	cuMemPoolSetAccess
	cuMemHostAlloc
	cuMemFreeHost
	cuMemHostGetDevicePointer
	cuMemHostRegister
	cuMemHostUnregister
	cuMemcpyHtoDAsync
	cuMemcpyDtoHAsync
	cuMemcpyDtoDAsync
	cuMemcpyPeerAsync
	cuMemsetD8Async
	cuMemsetD32Async

	cuStreamCreateWithPriority
	cuStreamDestroy
	cuStreamSynchronize
	cuStreamQuery
	cuStreamWaitEvent
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventSynchronize
	cuEventQuery
	cuEventElapsedTime

	cuModuleLoadDataEx
	cuModuleUnload
	cuModuleGetFunction
	cuModuleGetGlobal
	cuLinkCreate
	cuLinkAddData
	cuLinkComplete
	cuLinkDestroy
	cuFuncGetAttribute
	cuFuncSetAttribute
	cuFuncGetParamInfo

	cuLaunchKernel
	cuLaunchKernelEx
	cuOccupancyMaxActiveBlocksPerMultiprocessor
	cuOccupancyMaxPotentialBlockSize
	cuOccupancyMaxActiveClusters
	cuTensorMapEncodeTiled

	cuStreamBeginCapture
	cuStreamEndCapture
	cuGraphInstantiateWithFlags
	cuGraphLaunch
	cuGraphUpload
	cuGraphExecUpdate
	cuGraphExecKernelNodeSetParams
	cuGraphGetNodes
	cuGraphNodeGetType
	cuGraphDestroy
	cuGraphExecDestroy

	entryCount
)

// need is the oldest driver that this package works with. It has all entries
// that name no version.
const need Version = 11040

// entries holds, for each function, the name under which the library exports
// it, and the first version that does if that is newer than need. A name with a
// version in it has one signature for ever, which is the one used here.
var entries = [entryCount]struct {
	name  string
	since Version
}{
	cuInit:             {"cuInit", 0},
	cuDriverGetVersion: {"cuDriverGetVersion", 0},
	cuGetErrorName:     {"cuGetErrorName", 0},
	cuGetErrorString:   {"cuGetErrorString", 0},

	cuDeviceGet:           {"cuDeviceGet", 0},
	cuDeviceGetCount:      {"cuDeviceGetCount", 0},
	cuDeviceGetName:       {"cuDeviceGetName", 0},
	cuDeviceGetAttribute:  {"cuDeviceGetAttribute", 0},
	cuDeviceTotalMem:      {"cuDeviceTotalMem_v2", 0},
	cuDeviceGetUuid:       {"cuDeviceGetUuid", 0},
	cuDeviceGetPCIBusId:   {"cuDeviceGetPCIBusId", 0},
	cuDeviceCanAccessPeer: {"cuDeviceCanAccessPeer", 0},

	cuDevicePrimaryCtxRetain:    {"cuDevicePrimaryCtxRetain", 0},
	cuDevicePrimaryCtxRelease:   {"cuDevicePrimaryCtxRelease_v2", 0},
	cuDevicePrimaryCtxReset:     {"cuDevicePrimaryCtxReset_v2", 0},
	cuDevicePrimaryCtxSetFlags:  {"cuDevicePrimaryCtxSetFlags_v2", 0},
	cuCtxSetCurrent:             {"cuCtxSetCurrent", 0},
	cuCtxSynchronize:            {"cuCtxSynchronize", 0},
	cuCtxGetStreamPriorityRange: {"cuCtxGetStreamPriorityRange", 0},
	cuCtxEnablePeerAccess:       {"cuCtxEnablePeerAccess", 0},

	cuMemGetInfo:              {"cuMemGetInfo_v2", 0},
	cuMemAlloc:                {"cuMemAlloc_v2", 0},
	cuMemFree:                 {"cuMemFree_v2", 0},
	cuMemAllocAsync:           {"cuMemAllocAsync", 0},
	cuMemFreeAsync:            {"cuMemFreeAsync", 0},
	cuDeviceGetDefaultMemPool: {"cuDeviceGetDefaultMemPool", 0},
	cuMemPoolSetAttribute:     {"cuMemPoolSetAttribute", 0},
	cuMemPoolTrimTo:           {"cuMemPoolTrimTo", 0},
	cuMemPoolSetAccess:        {"cuMemPoolSetAccess", 0},
	cuMemHostAlloc:            {"cuMemHostAlloc", 0},
	cuMemFreeHost:             {"cuMemFreeHost", 0},
	cuMemHostGetDevicePointer: {"cuMemHostGetDevicePointer_v2", 0},
	cuMemHostRegister:         {"cuMemHostRegister_v2", 0},
	cuMemHostUnregister:       {"cuMemHostUnregister", 0},
	cuMemcpyHtoDAsync:         {"cuMemcpyHtoDAsync_v2", 0},
	cuMemcpyDtoHAsync:         {"cuMemcpyDtoHAsync_v2", 0},
	cuMemcpyDtoDAsync:         {"cuMemcpyDtoDAsync_v2", 0},
	cuMemcpyPeerAsync:         {"cuMemcpyPeerAsync", 0},
	cuMemsetD8Async:           {"cuMemsetD8Async", 0},
	cuMemsetD32Async:          {"cuMemsetD32Async", 0},

	cuStreamCreateWithPriority: {"cuStreamCreateWithPriority", 0},
	cuStreamDestroy:            {"cuStreamDestroy_v2", 0},
	cuStreamSynchronize:        {"cuStreamSynchronize", 0},
	cuStreamQuery:              {"cuStreamQuery", 0},
	cuStreamWaitEvent:          {"cuStreamWaitEvent", 0},
	cuEventCreate:              {"cuEventCreate", 0},
	cuEventDestroy:             {"cuEventDestroy_v2", 0},
	cuEventRecord:              {"cuEventRecord", 0},
	cuEventSynchronize:         {"cuEventSynchronize", 0},
	cuEventQuery:               {"cuEventQuery", 0},
	cuEventElapsedTime:         {"cuEventElapsedTime", 0},

	cuModuleLoadDataEx:  {"cuModuleLoadDataEx", 0},
	cuModuleUnload:      {"cuModuleUnload", 0},
	cuModuleGetFunction: {"cuModuleGetFunction", 0},
	cuModuleGetGlobal:   {"cuModuleGetGlobal_v2", 0},
	cuLinkCreate:        {"cuLinkCreate_v2", 0},
	cuLinkAddData:       {"cuLinkAddData_v2", 0},
	cuLinkComplete:      {"cuLinkComplete", 0},
	cuLinkDestroy:       {"cuLinkDestroy", 0},
	cuFuncGetAttribute:  {"cuFuncGetAttribute", 0},
	cuFuncSetAttribute:  {"cuFuncSetAttribute", 0},
	cuFuncGetParamInfo:  {"cuFuncGetParamInfo", 12040},

	cuLaunchKernel:   {"cuLaunchKernel", 0},
	cuLaunchKernelEx: {"cuLaunchKernelEx", 11080},
	cuOccupancyMaxActiveBlocksPerMultiprocessor: {"cuOccupancyMaxActiveBlocksPerMultiprocessor", 0},
	cuOccupancyMaxPotentialBlockSize:            {"cuOccupancyMaxPotentialBlockSize", 0},
	cuOccupancyMaxActiveClusters:                {"cuOccupancyMaxActiveClusters", 11080},
	cuTensorMapEncodeTiled:                      {"cuTensorMapEncodeTiled", 12000},

	cuStreamBeginCapture:           {"cuStreamBeginCapture_v2", 0},
	cuStreamEndCapture:             {"cuStreamEndCapture", 0},
	cuGraphInstantiateWithFlags:    {"cuGraphInstantiateWithFlags", 0},
	cuGraphLaunch:                  {"cuGraphLaunch", 0},
	cuGraphUpload:                  {"cuGraphUpload", 0},
	cuGraphExecUpdate:              {"cuGraphExecUpdate", 0},
	cuGraphExecKernelNodeSetParams: {"cuGraphExecKernelNodeSetParams", 0},
	cuGraphGetNodes:                {"cuGraphGetNodes", 0},
	cuGraphNodeGetType:             {"cuGraphNodeGetType", 0},
	cuGraphDestroy:                 {"cuGraphDestroy", 0},
	cuGraphExecDestroy:             {"cuGraphExecDestroy", 0},
}

// streamed has the functions that work on the stream or event in their arguments: with any current
// context they either work or return an error.
var streamed = [entryCount]bool{
	cuMemcpyHtoDAsync:   true,
	cuMemcpyDtoHAsync:   true,
	cuMemcpyDtoDAsync:   true,
	cuMemsetD8Async:     true,
	cuMemsetD32Async:    true,
	cuStreamSynchronize: true,
	cuStreamQuery:       true,
	cuStreamWaitEvent:   true,
	cuEventRecord:       true,
	cuEventSynchronize:  true,
	cuEventQuery:        true,
	cuLaunchKernel:      true,
	cuLaunchKernelEx:    true,
	cuGraphLaunch:       true,
}
